// @ts-check
import { frozen } from './frozen.mjs';

export default { kinds: [frozen()] };
