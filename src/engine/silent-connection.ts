import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';
import type { Clock, Timer } from './clock.js';

/** How often a ping asks for a sign of life. */
export const PING_MILLISECONDS = 15_000;
/** Looks at a connection, one a ping, that have to find nothing new; counted, for a process may have been stopped. */
const SILENT_LOOKS = 3;

/**
 * Ends HTTP/2 connections of which nothing is heard, not even the answer to a ping, within 45 to 60 s.
 *
 * undici sends pings but doesn't mind when they aren't answered, so a peer that vanishes without a word would keep its
 * watches waiting, and their successors after them.
 */
export function endingSilent(connect: buildConnector.connector, clock: Clock): buildConnector.connector {
  return (options, callback) => {
    connect(options, (...result) => {
      const [, socket] = result;
      if (socket && 'alpnProtocol' in socket && socket.alpnProtocol === 'h2') listen(socket, clock);
      callback(...result);
    });
  };
}

function listen(socket: Socket, clock: Clock): void {
  let heard = socket.bytesRead;
  let silentLooks = 0;
  const look = (): void => {
    silentLooks = socket.bytesRead === heard ? silentLooks + 1 : 0;
    heard = socket.bytesRead;
    if (silentLooks < SILENT_LOOKS) timer = clock.setTimer(PING_MILLISECONDS, look);
    else socket.destroy(Object.assign(new Error('The connection went silent'), { code: 'UND_ERR_SOCKET' }));
  };
  let timer: Timer = clock.setTimer(PING_MILLISECONDS, look);
  socket.once('close', () => {
    timer.cancel();
  });
}
