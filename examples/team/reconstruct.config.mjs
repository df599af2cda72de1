import { team } from './team.ts';

export default { builtIn: false, kinds: [team] };
