"""One file per backbone that makes region features of pictures."""
