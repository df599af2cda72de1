import { cache } from './cache.ts';
import { app } from './kind.ts';
import { product } from './product.ts';

export default { builtIn: false, kinds: [app, product, cache] };
