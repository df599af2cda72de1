// @ts-check
import { webApp } from './kind.mjs';

export default { kinds: [webApp] };
