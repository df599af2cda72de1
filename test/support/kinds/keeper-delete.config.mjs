// @ts-check
import { keeper } from './keeper.mjs';

export default { kinds: [keeper('delete')] };
