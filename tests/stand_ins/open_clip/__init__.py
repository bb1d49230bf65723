"""The interface of open_clip, which needs torchvision."""
