// @ts-check
import { shopOf } from './shop.mjs';

export default { kinds: [shopOf({ image: 'web:1', extra: 'one' })] };
