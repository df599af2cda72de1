// @ts-check
import { cluster } from './kind.mjs';

export default { kinds: [cluster] };
