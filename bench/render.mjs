// Rendering alone: milliseconds of processor time for each AppService after warm-up, and whether the heap stays flat.
import { appService } from '../lib/kinds/app-service/kind.js';
import { render } from '../lib/render/renderer.js';

const COUNT = 100_000;
const WARM_UP = 5_000;

function renderMany(count) {
  for (let index = 0; index < count; index++) {
    render(appService, {
      apiVersion: appService.type.apiVersion,
      kind: appService.type.kind,
      metadata: { namespace: 'shop', name: `web-${index}` },
      spec: {
        size: 1,
        image: 'registry.example.com/web:1',
        ports: [{ name: 'http', port: 80, targetPort: 8080 }],
      },
    });
  }
}

function heapMiB() {
  globalThis.gc();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

renderMany(WARM_UP);
const heapBefore = heapMiB();
// Processor time, which the neighbours on a machine change less than they change the time on the clock.
const start = process.cpuUsage();
renderMany(COUNT);
const { user, system } = process.cpuUsage(start);
const milliseconds = (user + system) / 1000 / COUNT;
console.log(JSON.stringify({ count: COUNT, milliseconds, heapGrowthMiB: heapMiB() - heapBefore }));
