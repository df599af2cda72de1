import { webPage } from './kind.mjs';

export default { kinds: [webPage] };
