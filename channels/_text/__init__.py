"""What all renderers share: Markdown read once into a tree, text laid out, and long text cut into messages."""
