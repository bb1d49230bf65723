"""The built-in data set: scenes, their rendering, their captions, and which captions are true of which scene."""
