// @ts-check
import { listing } from './kind.mjs';

export default { kinds: [listing] };
