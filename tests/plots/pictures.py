"""Read the texts of a picture back."""


def read_texts(ax):
    """Return the texts inside a panel."""
    return [text.get_text() for text in ax.texts]


def read_title(ax):
    """Return the title on the left as one line."""
    return ax.get_title(loc="left").replace("\n", " ")
