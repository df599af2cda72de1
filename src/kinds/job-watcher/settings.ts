/** What the admin decides, and no JobWatcher can. */
export interface Settings {
  /** Namespaces whose JobWatchers may act in other namespaces too. */
  readonly adminNamespaces: readonly string[];
  /** Namespaces in which nothing is deleted; `*` stands for any characters. */
  readonly protectedNamespaces: readonly string[];
}

/** @param operatorNamespace where the operator runs; undefined where that isn't known, as outside of a cluster */
export function defaultSettings(operatorNamespace?: string): Settings {
  // `default` is anybody's: an operator that runs there makes nobody an admin, and protects no Job.
  const own = operatorNamespace === undefined || operatorNamespace === 'default' ? [] : [operatorNamespace];
  return { adminNamespaces: own, protectedNamespaces: ['kube-*', ...own] };
}

/** Whether a namespace is one of those that a list of names and `*` describes. */
export function isListed(list: readonly string[], namespace: string): boolean {
  return list.some((pattern) => covers(pattern, namespace));
}

function covers(pattern: string, name: string): boolean {
  const [first = '', ...others] = pattern.split('*');
  if (others.length === 0) return name === first;
  const last = others.pop() ?? '';
  if (!name.startsWith(first) || !name.endsWith(last)) return false;
  let at = first.length;
  for (const part of others) {
    const found = name.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at <= name.length - last.length;
}
