import { nap } from './kind.mjs';

export default { kinds: [nap] };
