// Ends the processes and removes the folders of a starter that is gone, however it went (SIGKILL included). The
// starter holds the other end of stdin: when that closes, it has ended. Each line on stdin is one of
//   {"watch": PID}  {"forget": PID}  {"folder": PATH}  {"release": true}
// Plain JavaScript: it runs both beside the sources and beside the compiled files.
import { rm } from 'node:fs/promises';
import { createInterface } from 'node:readline';

const pids = new Set();
const folders = new Set();
let released = false;

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.watch !== undefined) pids.add(message.watch);
  if (message.forget !== undefined) pids.delete(message.forget);
  if (message.folder !== undefined) folders.add(message.folder);
  if (message.release !== undefined) released = true;
}

if (!released) {
  for (const pid of pids) {
    try {
      // Each watched process leads a group of its own; nothing of it is worth a grace period any more.
      process.kill(-pid, 'SIGKILL');
    } catch {
      // It has ended already.
    }
  }
  for (const folder of folders) {
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}
