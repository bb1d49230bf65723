"""One file per chapter of the report: which sections it adds."""
