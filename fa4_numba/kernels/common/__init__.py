"""What kernels of every architecture share: exponentials, masks, the tile scheduler, softmax over register tiles."""
