"""Workers for tests: threads that see copies of their tasks only, as another process would, and that get lost."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import cloudpickle

from dagpost._util.workers import Workers


class Lost(Exception):
    """As if the worker had been killed."""


class Crew(Workers):
    """Threads; every `lose`-th task is lost after it was performed, before its result arrives."""

    def __init__(self, count: int, lose: int = 0):
        self.capacity, self.lose, self.tasks, self.recovered = count, lose, 0, 0
        self.pool = ThreadPoolExecutor(count)

    def executor(self):
        return self

    def submit(self, function, *arguments):
        self.tasks += 1
        return self.pool.submit(self._perform, cloudpickle.dumps((function, arguments)), self.tasks)

    def _perform(self, task, number):
        function, arguments = pickle.loads(task)
        result = pickle.loads(pickle.dumps(function(*arguments)))
        if self.lose and number % self.lose == 0:
            raise Lost
        return result

    def lost(self, error):
        return isinstance(error, Lost)

    def recover(self, executor):
        self.recovered += 1

    def close(self):
        self.pool.shutdown()
