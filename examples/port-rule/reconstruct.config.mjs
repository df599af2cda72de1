import { portRule } from './kind.mjs';

export default { kinds: [portRule] };
