"""The networks that `HaarUNet` is compared with; importing this package registers them all."""

from paper.pooling.peers import gcnii as gcnii
from paper.pooling.peers import graph_unet as graph_unet
from paper.pooling.peers import kmis as kmis
from paper.pooling.peers import ndp_unet as ndp_unet
from paper.pooling.peers import selection_unet as selection_unet
from paper.pooling.peers import variants as variants
