import { app } from './kind.ts';

export default { builtIn: false, kinds: [app] };
