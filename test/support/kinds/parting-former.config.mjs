// @ts-check
import { partingWith } from './parting.mjs';

export default { kinds: [partingWith(false)] };
