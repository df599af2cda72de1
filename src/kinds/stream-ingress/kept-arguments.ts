import type { AnyObject } from '../../contract/object.js';
import type { Protocol } from './spec.js';

/** The ConfigMaps that an ingress-nginx was told to read, each as `namespace/name`; a missing one it doesn't read. */
export type KeptArguments = Readonly<Partial<Record<Protocol, string>>>;

const FLAGS: Readonly<Record<Protocol, string>> = {
  TCP: '--tcp-services-configmap',
  UDP: '--udp-services-configmap',
};

interface Container {
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly Variable[];
}

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly fieldRef?: { readonly fieldPath?: string } };
}

/** What the containers of a Deployment or DaemonSet are started with. */
export function keepArguments(object: AnyObject): KeptArguments {
  const { template } = (object.spec ?? {}) as {
    readonly template?: { readonly spec?: { readonly containers?: readonly Container[] } };
  };
  const found = (template?.spec?.containers ?? []).map((container) => argumentsOf(container, object));
  return Object.assign({}, ...found) as KeptArguments;
}

function argumentsOf({ command = [], args = [], env = [] }: Container, object: AnyObject): KeptArguments {
  const words = [...command, ...args];
  const value = (flag: string): string | undefined => {
    // The last one counts, as for ingress-nginx.
    const at = words.findLastIndex((word) => word === flag || word.startsWith(`${flag}=`));
    const word = words[at];
    return word === flag ? words[at + 1] : word?.slice(flag.length + 1);
  };
  const named = (['TCP', 'UDP'] as const).flatMap((protocol) => {
    const given = value(FLAGS[protocol]);
    return given ? [[protocol, expand(given, env, object)] as const] : [];
  });
  return Object.fromEntries(named);
}

/** As Kubernetes does it. The ingress-nginx chart writes `$(POD_NAMESPACE)`. */
function expand(text: string, env: readonly Variable[], { metadata }: AnyObject): string {
  return text.replace(/\$\(([^)]+)\)/g, (whole, name: string) => {
    const variable = env.find((candidate) => candidate.name === name);
    if (variable?.valueFrom?.fieldRef?.fieldPath === 'metadata.namespace') return metadata.namespace ?? '';
    return variable?.value ?? whole;
  });
}
