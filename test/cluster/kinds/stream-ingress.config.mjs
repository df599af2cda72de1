// @ts-check
import { streamIngress } from '../../../lib/kinds/stream-ingress/kind.js';

export default { kinds: [streamIngress] };
