"""File formats that several data sets share."""
