// @ts-check
import { shopOf } from './shop.mjs';

export default { kinds: [shopOf({ image: 'web:2', extra: 'two', isNew: true })] };
