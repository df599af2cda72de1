import { eventBus } from './kind.ts';

export default { kinds: [eventBus] };
