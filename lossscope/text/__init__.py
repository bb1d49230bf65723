"""From captions to token ids: vocabularies, subword tokenisers, and the clean-up of captions."""
