import { OperatorError } from '../../contract/error.js';
import { DEFAULT_PROTOCOL } from './container-ports.js';
import { given } from './given.js';
import type { Identity } from './metadata.js';
import type { AppServiceSpec, Route, RouteParent } from './spec.js';

/**
 * The part of an HTTPRoute's spec that is rendered.
 * @see https://gateway-api.sigs.k8s.io/reference/spec/#httproutespec
 */
export interface HttpRouteSpec {
  readonly hostnames?: readonly string[];
  readonly parentRefs: readonly RouteParent[];
  readonly rules: readonly {
    readonly matches: readonly { readonly path: { readonly type: 'PathPrefix'; readonly value: string } }[];
    readonly backendRefs: readonly { readonly name: string; readonly port: number }[];
  }[];
}

/** @throws OperatorError `RoutePortNotFound` where the route would lead to a port that the Service doesn't have */
export function routeSpec({ name }: Identity, spec: AppServiceSpec): HttpRouteSpec | undefined {
  const { route } = spec;
  if (!route) return undefined;
  return {
    ...given(route, 'hostnames', 'parentRefs'),
    rules: [
      {
        matches: [{ path: { type: 'PathPrefix', value: route.path ?? '/' } }],
        backendRefs: [{ name, port: backendPort(route, spec) }],
      },
    ],
  };
}

/** A backend is named by number: port names are free to change, and a Gateway speaks TCP only. */
function backendPort({ port }: Route, { ports = [] }: AppServiceSpec): number {
  const tcp = ports.filter(({ protocol = DEFAULT_PROTOCOL }) => protocol === 'TCP').map((each) => each.port);
  const [first] = tcp;
  if (port !== undefined && tcp.includes(port)) return port;
  if (port === undefined && first !== undefined) return first;
  const problem =
    port === undefined
      ? 'spec.route: leads to the first port of protocol TCP, and spec.ports has none'
      : `spec.route.port: ${port} is not the number of a port of protocol TCP in spec.ports, which has ${tcp.join(', ') || 'none'}`;
  throw new OperatorError({
    reason: 'RoutePortNotFound',
    path: ['spec', 'route', ...(port === undefined ? [] : ['port'])],
    message: `${problem}; ${first === undefined ? 'add one, or remove the route' : `give one of them, or add ${port ?? 'one'}`}`,
  });
}
