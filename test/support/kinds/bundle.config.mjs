import { bundleKind } from './bundle.mjs';

export default { kinds: [bundleKind()] };
