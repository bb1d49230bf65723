"""One file per backbone that extracts region features of pictures."""
