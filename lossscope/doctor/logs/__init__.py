"""What a training logged, of any trainer, under the names of the field: one file a format."""
