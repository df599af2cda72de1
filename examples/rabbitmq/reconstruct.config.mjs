import { rabbitmq } from './kind.ts';

export default { kinds: [rabbitmq] };
