import type { Kind } from '../contract/kind.js';
import { groupOf } from '../contract/object.js';

/** Health of a custom resource by the conditions that every kind has. Argo CD runs it without Lua's libraries. */
const HEALTH = `\
local health = { status = "Progressing", message = "Waiting for the controller" }
if obj.status == nil or obj.status.observedGeneration ~= obj.metadata.generation then
  return health
end
for _, condition in ipairs(obj.status.conditions or {}) do
  if condition.type == "Stalled" and condition.status == "True" then
    return { status = "Degraded", message = condition.message }
  end
  if condition.type == "Ready" then
    health.message = condition.message
    if condition.status == "True" then
      health.status = "Healthy"
    end
  end
end
return health
`;

/**
 * Returns the patch of Argo CD's ConfigMap `argocd-cm` with a health check for each kind.
 * @see https://argo-cd.readthedocs.io/en/stable/operator-manual/health/
 */
export function argoHealthPatch(kinds: readonly Kind[]): { readonly data: Record<string, string> } {
  const keys = kinds.map(
    ({ type }) => `resource.customizations.health.${groupOf(type.apiVersion)}_${type.kind}`,
  );
  return { data: Object.fromEntries(keys.map((key) => [key, HEALTH])) };
}
