import { servicePerPod } from './controller.mjs';

export default { controllers: [servicePerPod] };
