import { publicAddress } from './kind.mjs';

export default { kinds: [publicAddress] };
