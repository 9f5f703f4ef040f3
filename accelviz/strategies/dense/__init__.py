"""Dense products of layers: node features (a tall matrix) times weights, and their epilogues."""
