import { kind } from './kind.ts';

export default { builtIn: false, kinds: [kind] };
