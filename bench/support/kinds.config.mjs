import { furtherKinds } from './kinds.mjs';

export default { kinds: furtherKinds };
