import type { EventBusSpec } from './crd.ts';

/** What NATS is told by a file; $NAMES are variables of the pod, so that one file fits all of them. */
export function natsConf(name: string, spec: EventBusSpec): string {
  const lines = [
    'server_name: $POD_NAME',
    'port: 4222',
    'http_port: 8222',
    `max_payload: ${spec.maxPayloadKiB * 1024}`,
    `debug: ${spec.debug}`,
    // Clients are sent away one by one, within the time that a pod has to end.
    'lame_duck_grace_period: 10s',
    'lame_duck_duration: 30s',
    'jetstream { store_dir: /data }',
    ...(spec.tokenSecret === undefined ? [] : ['authorization { token: $TOKEN }']),
    ...(spec.replicas === 1 ? [] : [cluster(name, spec.replicas)]),
  ];
  return `${lines.join('\n')}\n`;
}

/** Each server is named: from their number, JetStream knows what a majority is. */
function cluster(name: string, replicas: number): string {
  const routes = Array.from({ length: replicas }, (_, index) => `nats://${name}-${index}.${name}-peers:6222`);
  return `cluster { name: ${name}, port: 6222, routes: [${routes.join(', ')}] }`;
}
