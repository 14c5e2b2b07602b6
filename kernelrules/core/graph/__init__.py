"""Neighbourhood graphs: the k nearest points of every point, exactly.

    neighbours        points × points → blocks of squared distances → the k smallest of each row
    neighbour_filter  the entries of a block that can still enter a result (neighbour_filter.h)

Distances come from the Gram builder; what passes the filter is computed again without cancellation; ties go to the
smaller row number.
"""
