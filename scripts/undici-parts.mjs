// What the bundle takes of undici in place of its index, which brings fetch, WebSockets, caches and mocks along. Unit tests
// run on it too, and test/full/bundle.test.ts compares its classes with those of the index.
import Agent from 'undici/lib/dispatcher/agent.js';
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
import Pool from 'undici/lib/dispatcher/pool.js';
import ProxyAgent from 'undici/lib/dispatcher/proxy-agent.js';
import api from 'undici/lib/api/index.js';
import buildConnector from 'undici/lib/core/connect.js';

// As in the index: dispatchers call each other by all of them, and ProxyAgent by `connect`.
Object.assign(Dispatcher.prototype, api);

export { Agent, buildConnector, Dispatcher, Pool, ProxyAgent };
