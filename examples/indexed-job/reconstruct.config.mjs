import { indexedJob } from './kind.mjs';

export default { kinds: [indexedJob] };
