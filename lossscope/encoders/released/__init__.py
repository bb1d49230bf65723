"""The authors' files: what is in them, and which options they were trained with."""
