local health = { status = "Progressing", message = "Waiting for the controller" }
if obj.status == nil or obj.status.observedGeneration ~= obj.metadata.generation then
  return health
end
local conditions = {}
for _, condition in ipairs(obj.status.conditions or {}) do
  conditions[condition.type] = condition
end
local stalled = conditions["Stalled"]
if stalled ~= nil and stalled.status == "True" then
  return { status = "Degraded", message = stalled.message }
end
local ready = conditions["Ready"]
if ready ~= nil then
  health.message = ready.message
  if ready.status == "True" then
    health.status = "Healthy"
  end
end
return health
