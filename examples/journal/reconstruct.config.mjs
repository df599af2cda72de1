import { journal } from './kind.mjs';

export default { kinds: [journal] };
