"""The authors' files: what they contain, and which options their models were trained with."""
