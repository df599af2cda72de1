// @ts-check
import { preview } from './kind.mjs';

export default { kinds: [preview] };
