import { tenant } from './kind.mjs';

export default { kinds: [tenant] };
