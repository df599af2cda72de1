// @ts-check
import { podHistory } from './kind.mjs';

export default { kinds: [podHistory] };
