import { kind } from './src/kind.ts';

export default { builtIn: false, kinds: [kind] };
