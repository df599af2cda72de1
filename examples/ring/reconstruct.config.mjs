// @ts-check
import { ring } from './kind.mjs';

export default { kinds: [ring] };
