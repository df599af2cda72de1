export * from '../../../src/testing/rights.js';
